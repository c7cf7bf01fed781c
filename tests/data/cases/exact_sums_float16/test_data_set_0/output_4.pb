
Bv26JH´I¯L^?%HHHÄ”ÊôÊCÄðÄEDC<e¬ÚIÇBv=]Ã#<(M=Ç°K}¾nÅ#3CGyÇ¢H«=ÚÆAFÁÌÙÁEìÃ¯Ä